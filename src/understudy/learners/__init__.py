"""What learns, each as `init` and `step` that read as the paper's five lines."""
