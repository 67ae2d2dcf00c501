//! Trained text classifiers: hashed n-grams and a small transformer, pure
