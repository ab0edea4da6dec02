import { Component, type ComponentChildren } from "preact";
import { Banner } from "../parts/controls.js";

/** Shows the error of a view in its place; the rest of the page stays. */
export class ErrorBoundary extends Component<{ readonly children: ComponentChildren }, { readonly error?: Error }> {
  static override getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return <Banner kind="error">This view cannot show the run: {error.message}</Banner>;
  }
}
