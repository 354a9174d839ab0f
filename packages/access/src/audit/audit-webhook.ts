import {
  exchangeDocument,
  type HttpClientOptions,
  KubeconfigError,
  kubeconfigAccess,
  loadKubeconfig,
} from '@keelson/client';
import { UsageError } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { AuditContext } from './audit-log.ts';
import { type AuditEvent, type AuditSink, eventBytes, LostEvents } from './audit-sink.ts';

/** Maximum number of events in one POST request, and the time that an event waits for further ones. */
const batchEvents = 400;
const batchWaitMs = 1_000;
/** Waiting events; further ones are dropped and counted. */
const maxWaiting = 10_000;
const maxWaitingLength = 64 * 1024 * 1024;
const timeoutMs = 30_000;
/** Pauses between the attempts to send one batch, which is dropped after the last. */
const pausesMs = [1_000, 2_000, 4_000, 8_000];
/** Time that closing waits for the receiver. */
const closeMs = 3_000;

/**
 * Sends events in batches to the server of a kubeconfig, as `EventList` by POST: see
 * docs/how-to/audit.md#send-events-to-a-server.
 *
 * @throws UsageError when the kubeconfig cannot be used
 */
export async function openAuditWebhook(configFile: string, context: AuditContext): Promise<AuditSink> {
  try {
    const { options } = await kubeconfigAccess(await loadKubeconfig({ path: configFile }), { clock: context.clock });
    return new AuditWebhook(options, context);
  } catch (error) {
    if (error instanceof KubeconfigError)
      throw new UsageError(`--audit-webhook-config-file ${configFile}: ${error.message}`);
    throw error;
  }
}

const listHead = Buffer.from('{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[');
const listEnd = Buffer.from(']}');
const comma = Buffer.from(',');

/** A response that would be the same after a retry. */
class Refused extends Error {}

class AuditWebhook implements AuditSink {
  readonly inBackground = true;
  readonly #options: HttpClientOptions;
  readonly #clock: Clock;
  readonly #lost: LostEvents;
  readonly #closing = new AbortController();
  #waiting: Buffer[] = [];
  #waitingLength = 0;
  #cancelSend: (() => void) | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: HttpClientOptions, { clock, logger, metrics }: AuditContext) {
    this.#options = options;
    this.#clock = clock;
    this.#lost = new LostEvents('webhook', logger.child({ component: 'audit' }), metrics);
  }

  add(event: AuditEvent): boolean {
    if (this.#waiting.length >= maxWaiting || this.#waitingLength + event.byteLength > maxWaitingLength) {
      this.#lost.add(1, `${this.#waiting.length} events are waiting`);
      return true;
    }
    this.#waiting.push(eventBytes(event));
    this.#waitingLength += event.byteLength;
    if (this.#waiting.length >= batchEvents) this.#send();
    else this.#cancelSend ??= this.#clock.after(batchWaitMs, () => this.#send());
    return true;
  }

  async close(): Promise<void> {
    // Sends the remaining events without pauses, including the batch in progress.
    const cancel = this.#clock.after(closeMs, () => this.#closing.abort());
    this.#send();
    await this.#sending;
    cancel();
    if (this.#waiting.length > 0) this.#lost.add(this.#waiting.length, 'the server has stopped');
  }

  #send(): void {
    this.#cancelSend?.();
    this.#cancelSend = undefined;
    if (this.#sending !== undefined || this.#waiting.length === 0) return;
    this.#sending = this.#sendWaiting().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendWaiting(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closing.signal.aborted) {
      const events = this.#waiting.splice(0, batchEvents);
      this.#waitingLength -= events.reduce((sum, { length }) => sum + length, 0);
      await this.#sendBatch(events);
    }
  }

  async #sendBatch(events: readonly Buffer[]): Promise<void> {
    const items = events.flatMap((event, i) => (i === 0 ? [event] : [comma, event]));
    const body = Buffer.concat([listHead, ...items, listEnd]);
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#post(body);
        this.#lost.recovered();
        return;
      } catch (error) {
        this.#lost.report(error);
        const pauseMs = pausesMs[attempt];
        if (error instanceof Refused || pauseMs === undefined || this.#closing.signal.aborted) {
          this.#lost.add(events.length, error);
          return;
        }
        await new Promise<void>((resolve) => {
          const { signal } = this.#closing;
          const wake = () => {
            cancel();
            signal.removeEventListener('abort', wake);
            resolve();
          };
          const cancel = this.#clock.after(pauseMs, wake);
          signal.addEventListener('abort', wake);
        });
      }
    }
  }

  async #post(body: Buffer): Promise<void> {
    const { server, ca, clientCertificate, clientKey, tlsServerName, insecureSkipTlsVerify, token, tokenProvider } =
      this.#options;
    const bearer = tokenProvider === undefined ? token : await tokenProvider();
    const { status } = await exchangeDocument({
      url: server,
      content: body,
      headers: bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` },
      tls: {
        ca,
        cert: clientCertificate,
        key: clientKey,
        ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
        rejectUnauthorized: !insecureSkipTlsVerify,
      },
      timeoutMs,
      clock: this.#clock,
      signal: this.#closing.signal,
    });
    if (status >= 200 && status < 300) return;
    const message = `${server} answered with the status ${status}`;
    throw status === 429 || status >= 500 ? new Error(message) : new Refused(message);
  }
}
