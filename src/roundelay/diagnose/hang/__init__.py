"""Who waits for whom, who has ended, and why."""
