import type { PodSource } from '../base/contracts/pod-source.ts';
import { Repeater } from '../base/repeater.ts';
import { fetchManifests } from './fetch-manifests.ts';
import { ManifestError, parseManifests } from './parse-manifest.ts';
import { podsOfManifests, withoutDuplicates } from './pod-set.ts';
import { reportDuplicate, type SourceOptions } from './source-options.ts';

export interface HttpSourceOptions extends SourceOptions {
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly periodMs: number;
}

/** Deadline of one request: see docs/reference/agent-rules.md#periods-and-limits. */
const timeoutMs = 10_000;

/**
 * Pods of a document at a URL: one pod or a list, fetched each period. While the request fails or the document is
 * invalid, the pods of the last valid document remain. Before the first valid document the source counts as not read.
 */
export class HttpSource implements PodSource {
  readonly name = 'http';
  readonly #options: HttpSourceOptions;
  readonly #repeater: Repeater;
  #last: Buffer | undefined;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
    const { clock, periodMs, logger } = options;
    this.#repeater = new Repeater({
      clock,
      periodMs,
      logger,
      what: 'fetching manifests',
      run: (signal) => this.#fetch(signal),
    });
  }

  async start(): Promise<void> {
    this.#repeater.start();
  }

  async stop(): Promise<void> {
    await this.#repeater.stop();
  }

  async #fetch(signal: AbortSignal): Promise<void> {
    const { url, headers, nodeName, logger, sink } = this.#options;
    const bytes = await fetchManifests({ url, headers, timeoutMs, signal });
    if (signal.aborted || this.#last?.equals(bytes)) return;
    // The query may contain a credential.
    const shown = url.replace(/\?.*$/s, '').replace(/\/\/[^/@]*@/, '//');
    try {
      const { items, problems } = parseManifests(bytes);
      for (const problem of problems) logger.warn('manifest rejected', { url: shown, ...problem });
      const { pods } = podsOfManifests(items, { nodeName, source: 'http', place: `url:${shown}` }, logger);
      if (items.length + problems.length > 0 && pods.length === 0) throw new ManifestError('contains no valid pod');
      sink(withoutDuplicates(pods, reportDuplicate(this.#options, this.name)));
      this.#last = bytes;
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      logger.warn('manifest document rejected', { url: shown, problem: error.message });
    }
  }
}
