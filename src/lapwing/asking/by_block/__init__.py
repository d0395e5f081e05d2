"""Answers by block of time: what adds up over blocks is measured once in each of them."""
