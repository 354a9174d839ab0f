import type { KubeObject } from '@keelson/core';

export interface WatchLine {
  readonly type: string;
  readonly object: KubeObject;
}

/** Opens a JSON watch, runs `meanwhile` once it is open, and returns the first `count` events. */
export async function readWatch(
  url: string,
  count: number,
  meanwhile: () => Promise<void>,
  timeoutMs = 30_000,
): Promise<WatchLine[]> {
  const abort = new AbortController();
  const timer = setTimeout(
    () => abort.abort(new Error(`fewer than ${count} events within ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    const response = await fetch(url, { signal: abort.signal });
    if (response.status !== 200 || response.body === null)
      throw new Error(`watch answered ${response.status}: ${await response.text()}`);
    const writing = meanwhile();
    const events: WatchLine[] = [];
    let pending = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (pending + chunk).split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines) events.push(JSON.parse(line) as WatchLine);
      if (events.length >= count) break;
    }
    await writing;
    return events.slice(0, count);
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}
