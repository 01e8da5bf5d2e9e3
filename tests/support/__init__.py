"""What the tests share: servers, strategies, builders and the brute-force oracle."""
