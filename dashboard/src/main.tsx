import { render } from "preact";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/parts.css";
import "./styles/messages.css";
import "./styles/runs.css";
import "./styles/curves.css";
import "./styles/episodes.css";
import "./styles/tokens.css";
import "./styles/groups.css";
import "./styles/drawings.css";
import "./styles/opponents.css";
import "./styles/workers.css";
import { App } from "./app.js";
import { LiveConnection } from "./data/live.js";
import { openSource } from "./data/source.js";

const source = openSource();
render(<App source={source} live={new LiveConnection(source.isReport)} />, document.getElementById("app")!);
