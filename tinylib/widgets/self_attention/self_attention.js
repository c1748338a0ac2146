import { live } from "../ui/parts.js";

export default live(
  "Self-attention, live",
  (ui) => [
    ui.words("weights"),
    ui.row(
      ui.matrix("x", "embeddings X"),
      ui.row(
        ui.matrix("w_q", "W_q"),
        ui.matrix("w_k", "W_k"),
        ui.matrix("w_v", "W_v"),
        ui.column(
          ui.entrySlider(),
          ui.toggle("scaled", "divide scores by √3"),
          ui.toggle("causal", "causal mask"),
        ),
      ),
    ),
    ui.row(
      ui.heat("scores", "scores, before the softmax", "signed"),
      ui.heat("weights", "weights: each row sums to 1"),
    ),
    ui.row(
      ui.heat("context", "context vectors Z", "signed"),
      ui.mixture("weights", "context", "v"),
    ),
  ],
  { query: 1 },
);
