"""What describes switches, and what schedulers say of hosts."""
