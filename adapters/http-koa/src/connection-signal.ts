import { getEventListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A controller on loan to one request. */
export interface SignalLoan {
  readonly controller: AbortController;
  /** To be called when the request is over; nothing of it may use the signal afterwards. */
  release(): void;
}

/**
 * The abort signal that the requests of one connection use one after the other. Making a signal for each request would
 * cost more than finding the object it asks for; and what most signals tell, that the client is gone, is a fact about
 * the connection.
 */
class ConnectionSignal implements SignalLoan {
  controller = new AbortController();
  #busy = false;

  /** False when another request has it, or the client is gone. */
  take(): boolean {
    if (this.#busy || this.controller.signal.aborted) return false;
    this.#busy = true;
    return true;
  }

  release(): void {
    const { signal } = this.controller;
    // Used up, or something still listens: the next request gets another one.
    if (signal.aborted || getEventListeners(signal, 'abort').length > 0) this.controller = new AbortController();
    this.#busy = false;
  }
}

const connections = new WeakMap<Socket, ConnectionSignal>();

function signalOf(socket: Socket): ConnectionSignal {
  let found = connections.get(socket);
  if (found === undefined) {
    const made = new ConnectionSignal();
    connections.set(socket, made);
    socket.once('close', () => made.controller.abort());
    if (socket.destroyed) made.controller.abort();
    found = made;
  }
  return found;
}

/**
 * A controller whose signal aborts when the client goes away. Requests that share their connection at the same time
 * (HTTP/2, pipelining) get one each.
 */
export function borrowSignal(request: IncomingMessage, response: ServerResponse): SignalLoan {
  const { socket } = request;
  if (request.httpVersionMajor === 1) {
    const connection = signalOf(socket);
    if (connection.take()) return connection;
  }
  const controller = new AbortController();
  const onClose = () => {
    if (!response.writableFinished) controller.abort();
  };
  response.once('close', onClose);
  if (response.destroyed) onClose();
  return { controller, release: () => response.off('close', onClose) };
}
