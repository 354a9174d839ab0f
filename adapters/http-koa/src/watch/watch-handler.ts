import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { isStatusError, type Status, statusErrors } from '@keelson/core';
import { ObjectList, type ResourceWatch, type Target, type WatchForm, type WireForm } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { Exchange } from '../exchange/exchange.ts';
import { answerHeaders, sendHead } from '../exchange/exchange.ts';
import type { HttpMetrics } from '../exchange/metrics.ts';
import type { HttpLimits } from '../exchange/options.ts';
import { integerParameter, selectParametersOf } from '../exchange/query-parameters.ts';
import { type MessageForm, openWebSocket, subprotocolsOf } from '../exchange/web-socket.ts';
import type { Route } from '../resource/resource-handler.ts';
import { WatchScheduler } from './watch-scheduler.ts';
import { WatchStream } from './watch-stream.ts';

/** Longest delay of a timer. */
const longestTimerMs = 2 ** 31 - 1;

export interface WatchHandlerOptions {
  readonly clock: Clock;
  readonly metrics: HttpMetrics;
  readonly limits: HttpLimits;
}

/** Opens watches and tracks the open ones. */
export class WatchHandler {
  readonly #options: WatchHandlerOptions;
  readonly #scheduler: WatchScheduler;
  readonly #open = new Set<WatchStream>();
  #draining = false;

  constructor(options: WatchHandlerOptions) {
    this.#options = options;
    this.#scheduler = new WatchScheduler(options.clock);
  }

  /** Ends every open watch cleanly. */
  drain(): void {
    this.#draining = true;
    for (const stream of this.#open) stream.end();
  }

  /**
   * Responds with a stream of events and resolves at its end. Failures before the first byte are ordinary error
   * responses.
   */
  async handle(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const { query } = exchange.attributes;
    const wire = route.forms.of(exchange, 'watch');
    const form = wire.watch();
    if (form === undefined) throw statusErrors.notAcceptable(['application/json', 'application/json;stream=watch']);
    const timeoutSeconds = integerParameter(query, 'timeoutSeconds') ?? 0;
    const select = selectParametersOf(query);
    let watch: ResourceWatch;
    try {
      watch = await route.service.watch(exchange, target, select);
    } catch (error) {
      if (isStatusError(error, 'Expired') || isStatusError(error, 'Gone'))
        return this.#refuse(exchange, form, error.status);
      throw error;
    }
    const output = await this.#start(exchange, form).catch((error: unknown) => {
      watch.close();
      throw error;
    });
    if (output === undefined || exchange.request.method === 'HEAD') {
      watch.close();
      output?.end();
      return;
    }
    const stream = new WatchStream(exchange, output, watch, form, {
      clock: this.#options.clock,
      scheduler: this.#scheduler,
      metrics: this.#options.metrics,
      timeoutMs: this.#lifeMs(timeoutSeconds),
      emptyList: select.sendInitialEvents === true ? (revision) => emptyList(wire, revision) : undefined,
      bookmarkIntervalMs: select.allowWatchBookmarks === true ? this.#options.limits.bookmarkIntervalMs : undefined,
    });
    this.#open.add(stream);
    try {
      const ended = stream.run();
      if (this.#draining) stream.end();
      await ended;
    } finally {
      this.#open.delete(stream);
    }
  }

  /**
   * Random when the client sets no `timeoutSeconds`, so that watches that were opened together are not opened again
   * together.
   */
  #lifeMs(timeoutSeconds: number): number {
    // Not injected: jitter, which spreads load over time and decides no result.
    const wanted =
      timeoutSeconds > 0 ? timeoutSeconds * 1000 : this.#options.limits.watchTimeoutMs * (1 + Math.random());
    return Math.min(wanted, longestTimerMs);
  }

  /**
   * Returns the stream for the frames; undefined when the client has disconnected. The headers are sent immediately,
   * even when there is no event yet.
   *
   * @throws StatusError 400 when the handshake of a WebSocket is invalid
   */
  async #start(exchange: Exchange, form: WatchForm): Promise<Writable | undefined> {
    const { request, response, webSocket } = exchange;
    if (webSocket !== undefined) return openWebSocket(exchange, messagesOf(form, request));
    if (!sendHead(exchange, 200, answerHeaders(exchange, form.contentType, undefined))) return undefined;
    exchange.longRunning = true;
    exchange.audit?.started(200);
    if (request.method !== 'HEAD') response.flushHeaders();
    return response;
  }

  /**
   * Rejects a watch from a revision that is no longer in the history, by one ERROR event: see
   * docs/reference/api-rules.md#start-of-a-watch.
   */
  async #refuse(exchange: Exchange, form: WatchForm, status: Status): Promise<void> {
    const output = await this.#start(exchange, form);
    output?.end(form.errorFrame(status));
  }
}

const newline = 0x0a;
/** Length of the field before each event in protobuf, the length of the event. */
const lengthBytes = 4;

/** Divides frames into events: lines of JSON, or in protobuf events without their length, as in kube-apiserver. */
export function eventsOf(frames: Buffer, binary: boolean): readonly Buffer[] {
  const events: Buffer[] = [];
  for (let start = 0; start < frames.length; ) {
    const from = binary ? start + lengthBytes : start;
    const end = binary ? from + frames.readUInt32BE(start) : frames.indexOf(newline, start) + 1;
    events.push(frames.subarray(from, end));
    start = end;
  }
  return events;
}

/** A watch over a WebSocket has a message for each event, and any subprotocol. */
function messagesOf({ contentType }: WatchForm, { headers }: IncomingMessage): MessageForm {
  const binary = !contentType.startsWith('application/json');
  return {
    subprotocol: subprotocolsOf(headers['sec-websocket-protocol'] ?? '')[0],
    binary,
    messages: (frames) => eventsOf(frames, binary),
  };
}

function emptyList(form: WireForm, revision: number): Buffer {
  const { head, items, tail } = form.list({ list: new ObjectList([], revision), continue: '' });
  return Buffer.concat([head, ...items, tail]);
}
