"""Importing this module registers our environments: Gymnasium's own `module:id` does so."""

from understudy.envs.registration import register

register()
