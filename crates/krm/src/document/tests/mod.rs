mod agreement;
mod basics;
mod edits;
mod places;
mod scalars;
