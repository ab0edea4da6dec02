import type { JSX } from "preact";
import { showPercent } from "../format.js";

interface ProbabilityItem {
  readonly text: string;
  readonly probability: number | null;
  readonly isChosen?: boolean;
}

interface ProbabilityBarsProps {
  readonly items: readonly ProbabilityItem[];
  /** Makes the items buttons. */
  readonly onPick?: (text: string) => void;
}

/** Texts with their probabilities as bars. */
export function ProbabilityBars({ items, onPick }: ProbabilityBarsProps): JSX.Element {
  if (items.length === 0) return <p class="soft">Not recorded.</p>;
  return (
    <ul class="bars">
      {items.map(({ text, probability, isChosen = false }, i) => {
        const content = (
          <>
            <i style={{ width: `${(probability ?? 0) * 100}%` }} />
            <code>{text}</code>
            <span class="number">{probability === null ? "allowed" : showPercent(probability)}</span>
          </>
        );
        return (
          <li key={i} class={isChosen ? "chosen" : undefined}>
            {onPick ? (
              <button type="button" onClick={() => onPick(text)}>
                {content}
              </button>
            ) : (
              content
            )}
          </li>
        );
      })}
    </ul>
  );
}
