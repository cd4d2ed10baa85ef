"""Start-up of a job of processes: who the ranks are, where they are, and connections among them."""

from .environment import Job, job_from_environment
from .machine import node_identity
from .members import Member
from .session import Session, join

__all__ = ["Job", "Member", "Session", "job_from_environment", "join", "node_identity"]
