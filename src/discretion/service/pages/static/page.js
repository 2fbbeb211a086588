// What every page gets with scripts: times in the reader's zone, forms that are sent once, and buttons that copy.
"use strict";

function showTimes(root) {
  const kinds = {
    day: { dateStyle: "long" },
    minute: { dateStyle: "long", timeStyle: "short" },
  };
  for (const time of root.querySelectorAll("time[data-show]")) {
    const form = new Intl.DateTimeFormat("en-GB", kinds[time.dataset.show]);
    time.textContent = form.format(new Date(time.dateTime));
    time.title = time.dateTime;
  }
}

function showCopyButtons(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = !navigator.clipboard;
  }
}

document.addEventListener("click", async (event) => {
  if (event.target.closest("[data-print]")) window.print();
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 2000);
});

// A form that was sent cannot be sent again by a second click. Its button's own value is read before it is disabled.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || form.dataset.download) return;
  setTimeout(() => {
    for (const button of form.querySelectorAll("button[type=submit]")) button.disabled = true;
    form.classList.add("sent");
  });
});

// A page that comes back with the back button can be used again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form.sent")) {
    form.classList.remove("sent");
    for (const button of form.querySelectorAll("button[type=submit]")) button.disabled = false;
  }
});

document.addEventListener("DOMContentLoaded", () => {
  document.documentElement.classList.add("scripted");
  showTimes(document);
  showCopyButtons(document);
  const problem = document.querySelector(".notice.problem[tabindex]");
  if (problem) problem.focus();
});
document.addEventListener("htmx:afterSwap", (event) => {
  showTimes(event.target);
  showCopyButtons(event.target);
});
