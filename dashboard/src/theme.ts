import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const KEY = "llamagym-theme";
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function readTheme(): Theme {
  const stored = readStored();
  if (stored === "light" || stored === "dark") return stored;
  return prefersDark.matches ? "dark" : "light";
}

/** Storage is absent in a file opened with restricted permissions. */
function readStored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function storeTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice lasts until the page is closed.
  }
}

/**
 * Returns the theme, which follows the system until the user chooses, and a function that switches
 * it.
 */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(readTheme);
  // Set while rendering: charts below read the theme's colors when they are drawn.
  document.documentElement.dataset.theme = theme;
  useEffect(() => {
    const follow = (): void => setTheme(readTheme());
    prefersDark.addEventListener("change", follow);
    return () => prefersDark.removeEventListener("change", follow);
  }, []);
  const toggle = (): void => {
    const next = theme === "light" ? "dark" : "light";
    storeTheme(next);
    setTheme(next);
  };
  return [theme, toggle];
}
