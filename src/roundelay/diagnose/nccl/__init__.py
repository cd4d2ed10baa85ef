"""What logs of NCCL and RCCL say."""
