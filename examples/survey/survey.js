// The answers are randomized here, before anything is sent. The page refuses a document above epsilon 2.
import { Client, StoredLedger } from "./bitldp.js";

const form = document.getElementById("form");
const said = document.getElementById("said");
try {
  const text = await (await fetch("client.json")).text();
  const client = await Client.open(text, { epsilon: 2, ledger: new StoredLedger("travel survey") });
  form.transport.append(...client.labels[0].map((label) => new Option(label)));
  document.getElementById("promise").textContent =
    `What is sent changes the odds between any two answers by a factor of at most ${Math.exp(client.epsilon).toFixed(1)}.`;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const report = await client.randomize(form.transport.value, Number(form.minutes.value));
      const answer = await fetch("report", { method: "POST", body: report });
      said.textContent = answer.ok ? `Sent ${report.length} random bytes. Thank you.` : "The collector refused the report.";
    } catch (error) {
      said.textContent = error.kind === "budget" ? "You have answered already: your privacy budget is spent." : "Not sent.";
    }
  });
  document.body.dataset.ready = "yes";
} catch (error) {
  said.textContent = `This form cannot be sent privately here (${error.kind ?? "no connection"}).`;
}
