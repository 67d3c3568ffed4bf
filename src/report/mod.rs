//! Renders an assessment and its record; decides nothing.
