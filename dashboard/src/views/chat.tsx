import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PlayChatRequest } from "../../../src/app/dashboard/api.js";
import { useDashboard } from "../data/context.js";
import { Banner, Panel } from "../parts/controls.js";
import { stripControls } from "../text/ansi.js";

type Message = PlayChatRequest["messages"][number];

/** A conversation with the loaded model. */
export function Chat({ session }: { readonly session: string }): JSX.Element {
  const { source } = useDashboard();
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();

  const send = async (): Promise<void> => {
    const asked: readonly Message[] = [...messages, { role: "user", content: text }];
    setText("");
    setBusy(true);
    setProblem(undefined);
    setMessages(asked);
    let reply = "";
    try {
      const body: PlayChatRequest = { messages: asked };
      for await (const piece of source.stream(`/api/play/${session}/chat`, body)) {
        reply += piece;
        setMessages([...asked, { role: "assistant", content: reply }]);
      }
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel
      title="Chat"
      tools={
        <button type="button" class="button" disabled={isBusy} onClick={() => setMessages([])}>
          New chat
        </button>
      }
    >
      <div class="chat" role="log" aria-label="Messages">
        {messages.length === 0 && <p class="soft">The model replies with its training's settings.</p>}
        {messages.map(({ role, content }, i) => (
          <div key={i} class={`message ${role}`}>
            <small>{role}</small>
            <pre>{stripControls(content)}</pre>
          </div>
        ))}
      </div>
      {problem !== undefined && <Banner kind="error">{problem}</Banner>}
      <form
        class="send"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") void send();
        }}
      >
        <input
          type="text"
          aria-label="Message"
          placeholder="Message"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={isBusy || text.trim() === ""}>
          Send
        </button>
      </form>
    </Panel>
  );
}
