import type { JSX } from "preact";
import type { TurnDetail, RecordedVocabulary } from "../../../src/app/dashboard/api.js";
import { showNumber, showSigned } from "../format.js";
import { stripControls } from "../text/ansi.js";
import { Facts } from "./controls.js";

/** Characters of a prompt that are shown; the end is what the model replies to. */
const MAX_PROMPT = 6000;

/** Returns the text of a prompt, with or without special tokens. */
export function promptText(
  { prompt }: TurnDetail,
  { texts, special }: RecordedVocabulary,
  showSpecial: boolean,
): string {
  const hidden = new Set(showSpecial ? [] : special);
  const text = prompt.map((token) => (hidden.has(token) ? "\n" : (texts[token] ?? ""))).join("");
  const shown = text.length > MAX_PROMPT ? `…${text.slice(-MAX_PROMPT)}` : text;
  return stripControls(shown)
    .replaceAll(/\n{2,}/g, "\n\n")
    .trim();
}

interface TurnTextProps {
  readonly turn: TurnDetail;
  readonly vocabulary: RecordedVocabulary;
}

/** A turn as the model saw it: prompt, completion, action and numbers. */
export function TurnText({ turn, vocabulary }: TurnTextProps): JSX.Element {
  const completion = stripControls(turn.text);
  return (
    <div class="turn-text">
      <h3 class="caption">Prompt</h3>
      <pre class="prompt">{promptText(turn, vocabulary, false)}</pre>
      <h3 class="caption">Completion</h3>
      <pre class="completion">{completion === "" ? "(empty)" : completion}</pre>
      <Facts
        facts={[
          ["Action", turn.isValid ? stripControls(turn.action ?? "–") : <span class="tag warn">invalid</span>],
          ["Reward", showSigned(turn.reward)],
          ["Return to go", showSigned(turn.returnToGo)],
          ["Value", showNumber(turn.value)],
          ["Advantage", showSigned(turn.advantage)],
        ]}
      />
    </div>
  );
}
