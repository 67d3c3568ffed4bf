//! From suite and inventory to plan.
