mod agreement;
mod generate;
