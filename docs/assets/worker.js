// Search in pages that were opened from a folder: browsers let no worker begin there, so it lives in a hidden frame.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      inside.document.open();
      inside.document.write(
        `<!doctype html><body><script>postMessage = (data) => parent.postMessage(data, "*");</${"script"}>` +
          `<script src="${url}"></${"script"}></body>`,
      );
      inside.document.close();
      this.ready = new Promise((done) => this.frame.addEventListener("load", done, { once: true }));
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
