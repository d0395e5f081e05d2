"""``lapwing shell``: asks statements one after another and shows each price before it is paid."""
