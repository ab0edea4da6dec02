import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  readonly count: number;
  readonly rowHeight: number;
  readonly label: string;
  readonly className?: string;
  readonly role?: JSX.AriaRole;
  /** Renders the row at `index`; its element must be `rowHeight` pixels high. */
  readonly row: (index: number) => ComponentChildren;
  /** Row that is scrolled into view when it changes. */
  readonly focused?: number;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  /** Receives the width of the list in pixels. */
  readonly onWidth?: (width: number) => void;
}

/** Rows kept above and below the visible ones, so that fast scrolling shows no gaps. */
const MARGIN_ROWS = 12;

/**
 * Elements of browsers end at 33 million pixels (Chromium) or 17 million (Firefox); longer lists
 * are scaled.
 */
const MAX_HEIGHT = 16_000_000;

/** Shows a list of any length: only the rows in view are in the document. */
export function VirtualList(props: VirtualListProps): JSX.Element {
  const { count, rowHeight, focused } = props;
  const element = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const total = count * rowHeight;
  const full = Math.min(total, MAX_HEIGHT);
  // Above MAX_HEIGHT a pixel of the scroll bar is more than a pixel of the list.
  const scale = full > height ? (total - height) / (full - height) : 1;
  const offset = top * scale;
  const first = Math.max(0, Math.floor(offset / rowHeight) - MARGIN_ROWS);
  const last = Math.min(count, Math.ceil((offset + height) / rowHeight) + MARGIN_ROWS);

  useEffect(() => {
    const host = element.current!;
    const observer = new ResizeObserver(() => {
      setHeight(host.clientHeight);
      props.onWidth?.(host.clientWidth);
    });
    observer.observe(host);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (focused === undefined || focused < 0) return;
    const host = element.current!;
    const y = focused * rowHeight;
    const current = host.scrollTop * scale;
    if (y < current) host.scrollTop = y / scale;
    else if (y + rowHeight > current + host.clientHeight) {
      host.scrollTop = (y + rowHeight - host.clientHeight) / scale;
    }
  }, [focused]);

  return (
    <div
      class={`virtual-list ${props.className ?? ""}`}
      ref={element}
      tabIndex={0}
      role={props.role ?? "list"}
      aria-label={props.label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={props.onKeyDown}
    >
      <div class="virtual-space" style={{ height: `${full}px` }}>
        <div class="virtual-rows" style={{ transform: `translateY(${top - offset + first * rowHeight}px)` }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, i) => props.row(first + i))}
        </div>
      </div>
    </div>
  );
}
