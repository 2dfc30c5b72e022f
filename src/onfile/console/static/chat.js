// Shows a turn as it happens. Without this file the same forms work, with one whole page for each.
(() => {
  "use strict";

  const STREAM = "application/x-ndjson";
  const turns = () => document.getElementById("turns");

  function paragraph(kind, words) {
    const made = document.createElement("p");
    made.className = kind;
    made.dir = "auto";
    made.textContent = words;
    return made;
  }

  // The place of a turn that the page does not hold yet: what was said, and room for the reply.
  function begun(id, said) {
    const turn = document.createElement("article");
    turn.className = "exchange";
    turn.id = id;
    turn.tabIndex = -1;
    const you = paragraph("you", said);
    const who = document.createElement("span");
    who.className = "hidden";
    who.textContent = "You said: ";
    you.prepend(who);
    const reply = document.createElement("div");
    reply.className = "reply";
    turn.append(you, reply);
    turns().append(turn);
    return turn;
  }

  function tell(words) {
    const said = paragraph("said refused", words);
    said.setAttribute("role", "alert");
    document.getElementById("status").replaceChildren(said);
  }

  // One event of the turn, put at the end of its reply.
  function show(turn, event) {
    const reply = turn.querySelector(".reply");
    const waiting = reply.querySelector(".waiting");
    // Whoever has scrolled up to read is left there.
    const inSight = waiting.getBoundingClientRect().top <= innerHeight;
    if (event.text !== undefined) {
      let last = waiting.previousElementSibling;
      if (!last || !last.classList.contains("live")) {
        last = paragraph("says live", "");
        waiting.before(last);
      }
      last.textContent += event.text;
    } else if (event.call !== undefined) {
      const known = [...reply.querySelectorAll("[data-call]")].find((one) => one.dataset.call === event.call);
      const line = known || paragraph("did", "");
      line.className = `did ${event.outcome || "open"}`;
      line.dataset.call = event.call;
      line.textContent = event.words;
      if (!known) waiting.before(line);
    }
    if (inSight) waiting.scrollIntoView({ block: "nearest" });
  }

  async function* lines(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      for (const part of parts) yield JSON.parse(part);
    }
  }

  // The page as the server now has it: the turn as it is kept, the list, and the box for the next message.
  async function settle(turn, address) {
    const response = await fetch(address);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const kept = page.getElementById(turn.id);
    if (kept) turn.replaceWith(kept);
    for (const id of ["threads", "box", "status"]) {
      const fresh = page.getElementById(id);
      if (fresh) document.getElementById(id).replaceWith(fresh);
    }
    document.querySelector(".chat").classList.add("chosen");
    const seen = new URL(address, location.href);
    seen.searchParams.delete("said");
    history.replaceState(history.state, "", seen);
    return kept || turn;
  }

  async function play(turn, request) {
    const log = turns();
    // Told to a screen reader once it is whole, not word by word.
    log.setAttribute("aria-busy", "true");
    turn.removeAttribute("data-follow");
    turn.querySelector(".waiting") || turn.querySelector(".reply").append(paragraph("waiting", "Answering…"));
    try {
      const response = await request;
      if (response.redirected || !(response.headers.get("content-type") || "").startsWith(STREAM)) {
        // Not a turn under way: a page says what there is instead.
        location.assign(response.redirected ? response.url : location.href);
        return;
      }
      let end = null;
      for await (const event of lines(response)) {
        if (event.page !== undefined) end = event;
        else show(turn, event);
      }
      if (!end) throw new Error("the stream broke off");
      const kept = await settle(turn, end.page);
      // To the question and not to a button of it: a key that was meant for something else must approve nothing.
      const next = kept.querySelector(".asked") || document.getElementById("message");
      if (next) next.focus({ preventScroll: true });
      (document.getElementById("message") ? document.getElementById("box") : kept).scrollIntoView({ block: "end" });
    } catch {
      tell("The server went away. The turn is kept: open this page again, and it goes on.");
    } finally {
      log.setAttribute("aria-busy", "false");
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-turn]");
    if (!form) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const turn = document.getElementById(form.dataset.turn) || begun(form.dataset.turn, body.get("message").trim());
    const request = fetch(form.action, { method: "POST", body, headers: { Accept: STREAM } });
    if (form.classList.contains("say")) {
      form.querySelector("textarea").value = "";
      for (const control of form.elements) control.disabled = true;
    } else {
      form.closest(".asked").remove();
    }
    document.getElementById("status").replaceChildren();
    play(turn, request);
    turn.scrollIntoView({ block: "end" });
  });

  document.addEventListener("keydown", (event) => {
    if (event.target.id !== "message" || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });

  for (const turn of document.querySelectorAll("[data-follow]")) {
    play(turn, fetch(turn.dataset.follow, { headers: { Accept: STREAM } }));
  }
  if (!location.hash && turns() && turns().children.length) {
    document.getElementById("box").scrollIntoView({ block: "end" });
  }
})();
