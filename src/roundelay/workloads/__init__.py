"""What collectives exist for: training and generation that really run over Roundelay."""
