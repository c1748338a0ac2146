import { live } from "../ui/parts.js";

export default live(
  "From averaging to attention, live",
  (ui) => [
    ui.words("weights"),
    ui.slider("sharpness", "sharpness", 0, 20, 0.5),
    ui.row(ui.matrix("x", "embeddings X"), ui.heat("weights", "weights: each row sums to 1")),
    ui.row(ui.heat("output", "averages", "signed"), ui.mixture("weights", "output")),
  ],
  { query: -1 },
);
