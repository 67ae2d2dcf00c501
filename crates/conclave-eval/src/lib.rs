//! Measures judgements against labels: figures, intervals, curves, mutations, a report, pure
