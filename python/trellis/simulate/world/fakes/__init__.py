"""What operators give that have no fake implementations in torch, so that a simulated job may use them."""
