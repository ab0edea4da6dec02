import type { ConstraintCursor, TokenConstraint } from "../../generation/index.js";

/** Constrains a text to a schema, or to the first token of a marker. */
export class SchemaOrMarker implements TokenConstraint {
  constructor(
    private readonly schema: TokenConstraint,
    private readonly marker: number,
  ) {}

  isMarker(tokens: readonly number[]): boolean {
    return tokens.length === 1 && tokens[0] === this.marker;
  }

  cursor(): ConstraintCursor {
    const { marker } = this;
    const inner = this.schema.cursor();
    const first = Int32Array.from(new Set([...inner.allowedTokens, marker])).sort();
    let state: "start" | "schema" | "marker" = "start";
    return {
      get allowedTokens() {
        return state === "start" ? first : inner.allowedTokens;
      },
      get isComplete() {
        return state === "marker" || inner.isComplete;
      },
      advance(token) {
        state = state === "start" && token === marker ? "marker" : "schema";
        inner.advance(token);
      },
    };
  }
}
