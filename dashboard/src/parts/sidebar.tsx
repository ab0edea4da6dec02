import type { JSX } from "preact";
import type { ConnectionState } from "../data/live.js";
import { linkTo } from "../route.js";
import type { Theme } from "../theme.js";
import { IconButton } from "./controls.js";
import { Icon, type IconName } from "./icon.js";

/** An entry of the navigation. */
export interface ViewLink {
  readonly view: IconName;
  readonly title: string;
  /** Needs a server; absent from reports. */
  readonly isLive?: boolean;
}

const CONNECTION_TEXTS: Record<ConnectionState, string> = {
  connecting: "Connecting",
  open: "Live",
  lost: "Reconnecting",
  report: "Report",
};

interface SidebarProps {
  readonly links: readonly ViewLink[];
  readonly active: string;
  readonly selected: readonly string[];
  readonly connection: ConnectionState;
  readonly theme: Theme;
  readonly onToggleTheme: () => void;
}

export function Sidebar({ links, active, selected, connection, theme, onToggleTheme }: SidebarProps): JSX.Element {
  return (
    <div class="sidebar">
      <a class="brand" href="#/runs">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M6 23 12 15l5 4 9-11" />
          <circle cx="26" cy="8" r="2.6" />
        </svg>
        llamagym
      </a>
      <nav aria-label="Views">
        {links.map(({ view, title }) => (
          <a
            key={view}
            href={linkTo(view, { run: view === "runs" ? undefined : selected })}
            aria-current={view === active || (view === "runs" && active === "sweep") ? "page" : undefined}
          >
            <Icon name={view} />
            <span>{title}</span>
          </a>
        ))}
      </nav>
      <div class="sidebar-foot">
        <span class={`connection ${connection}`} role="status">
          <i aria-hidden="true" />
          {CONNECTION_TEXTS[connection]}
        </span>
        <IconButton
          icon={theme === "dark" ? "sun" : "moon"}
          label={theme === "dark" ? "Light theme" : "Dark theme"}
          onClick={onToggleTheme}
        />
      </div>
    </div>
  );
}
