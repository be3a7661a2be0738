/* Search without a server: browsers run no worker from file:, so a frame with the same script stands in for it. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.title = "search"
      frame.srcdoc = "<!doctype html><title>search</title>"
      frame.addEventListener("load", () => this.run(frame.contentWindow, String(url)), { once: true })
      document.body.append(frame)
    }

    /* What the script calls as a worker: it answers by postMessage, and may load others. */
    run(scope, url) {
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      scope.importScripts = (...urls) => urls.reduce((last, next) => last.then(() => load(scope, next)), Promise.resolve())
      load(scope, url).then(() => {
        this.scope = scope
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      })
    }

    postMessage(data) {
      if (this.scope) this.scope.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }
  }

  const load = (scope, url) => new Promise((resolve, reject) => {
    const script = scope.document.createElement("script")
    script.src = url
    script.onload = resolve
    script.onerror = reject
    scope.document.head.append(script)
  })
}
