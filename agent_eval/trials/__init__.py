"""Running trials: plan, schedule, run one trial, record it, seal.

Owns the way from a consumer's plan to a sealed evidence directory, interruption
included. It decides nothing about a domain and formats nothing for people.
"""
