"""``lapwing shell``: statements one after another, with the price in sight before it is paid."""
