"""What one would use instead, in the same house: networks, replay, practice and measurement are
those of `understudy.learners.deep` and of the tabular learner. `methods.py` lists them."""
