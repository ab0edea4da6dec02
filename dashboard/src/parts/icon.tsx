import type { JSX } from "preact";

/** Strokes of a 16 by 16 grid. */
const PATHS = {
  runs: "M2.5 3.5h11M2.5 8h11M2.5 12.5h7",
  curves: "M2 13.5V2.5M2 13.5h12M4.5 10.5l3-4 2.5 2 3.5-5",
  episodes: "M2.5 3h11v10h-11zM6.5 6v4l3.5-2z",
  tokens: "M2 4.5h5v3H2zM9 4.5h5v3H9zM2 9.5h3v3H2zM7 9.5h7v3H7z",
  groups: "M2.5 13V7h2.5v6M6.75 13V3h2.5v10M11 13V9.5h2.5V13",
  compare: "M2.5 3h4.5v10H2.5zM9 3h4.5v10H9z",
  opponents: "M2.5 3h4v4h-4zM9.5 9h4v4h-4zM9 4.5h4.5M11.5 2.5l2 2-2 2M7 11.5H2.5M4.5 9.5l-2 2 2 2",
  play: "M4.5 2.5v11l9-5.5z",
  control: "M2 4.5h6M11.5 4.5H14M2 11.5h2.5M8 11.5h6M9.75 2.75v3.5M6.25 9.75v3.5",
  health: "M1.5 8.5h3l2-5 3 9 2-4h3",
  workers: "M2 3.5h5M9 3.5h3M2 8h2M6 8h8M2 12.5h7M11 12.5h3",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  moon: "M13 9.8A5.6 5.6 0 0 1 6.2 3a5.6 5.6 0 1 0 6.8 6.8z",
  edit: "M3 13l.6-2.6L10.8 3.2l2 2L5.6 12.4zM9.5 4.5l2 2",
  close: "M4 4l8 8M12 4l-8 8",
  info: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 7.2v4M8 4.8v.4",
  download: "M8 2.5v7.5M5 7.5l3 3 3-3M2.5 13.5h11",
  pause: "M5 3v10M11 3v10",
  next: "M4 3v10l6-5zM12 3v10",
  previous: "M12 3v10L6 8zM4 3v10",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3.5M8 11.6v.4",
  dice: "M3 3h10v10H3zM5.5 5.5h.1M10.5 10.5h.1M8 8h.1M10.5 5.5h.1M5.5 10.5h.1",
  send: "M2.5 8L13.5 3l-3 10.5-3-4zM7.5 9.5l6-6.5",
} as const;

export type IconName = keyof typeof PATHS;

/** A line icon in the color of the text; the label next to it or on its button names it. */
export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
