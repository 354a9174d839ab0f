import { createServer } from 'node:http';
import type { KnownService } from '../routes/service-table.ts';
import type { PortListener } from './port-listener.ts';

/** Reports whether this machine has endpoints of a service with the external traffic policy `Local`. */
export class HealthPort implements PortListener {
  #service: KnownService;
  #count: number;
  readonly #server = createServer((_request, response) => {
    const { namespace, name } = this.#service;
    const body = JSON.stringify({ service: { namespace, name }, localEndpoints: this.#count });
    response.writeHead(this.#count > 0 ? 200 : 503, { 'Content-Type': 'application/json', Connection: 'close' });
    response.end(body);
  });

  constructor(service: KnownService, count: number) {
    this.#service = service;
    this.#count = count;
  }

  update(service: KnownService, count: number): void {
    this.#service = service;
    this.#count = count;
  }

  listen(address: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: address, port }, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.destroy();
  }

  destroy(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
