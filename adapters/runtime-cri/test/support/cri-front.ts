import { Client, credentials, Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';

const asIs = (bytes: Buffer): Buffer => bytes;
const services = {
  RuntimeService: [
    'Version',
    'RunPodSandbox',
    'StopPodSandbox',
    'RemovePodSandbox',
    'PodSandboxStatus',
    'ListPodSandbox',
    'ContainerStatus',
  ],
  ImageService: ['ImageStatus', 'ListImages'],
};

interface FrontOptions {
  /** The only version of the protocol that is served. */
  readonly version: 'v1' | 'v1alpha2';
  /** Changes of responses, by the name of the call. */
  readonly change?: Readonly<Record<string, (response: Buffer) => Buffer>>;
}

/** A daemon that forwards calls to a real one and can change its responses. It rejects calls of other versions. */
export class CriFront {
  readonly endpoint: string;
  /** Paths of the forwarded calls. */
  readonly calls: string[] = [];
  readonly #server = new Server();
  readonly #client: Client;

  private constructor(socket: string, own: string) {
    this.endpoint = `unix://${own}`;
    this.#client = new Client(`unix://${socket}`, credentials.createInsecure());
  }

  static async open(socket: string, own: string, { version, change = {} }: FrontOptions): Promise<CriFront> {
    const front = new CriFront(socket, own);
    for (const [service, names] of Object.entries(services)) {
      for (const name of names) front.#forward(`/runtime.${version}.${service}/${name}`, change[name] ?? asIs);
    }
    await new Promise<void>((resolve, reject) => {
      front.#server.bindAsync(front.endpoint, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      );
    });
    return front;
  }

  close(): void {
    this.#server.forceShutdown();
    this.#client.close();
  }

  #forward(path: string, change: (response: Buffer) => Buffer): void {
    const handler = (
      call: { request: Buffer },
      reply: (error: Partial<ServiceError> | null, bytes?: Buffer) => void,
    ) => {
      this.calls.push(path);
      this.#client.makeUnaryRequest(path, asIs, asIs, call.request, (error, bytes) => {
        reply(error && { code: error.code ?? status.UNKNOWN, details: error.details }, bytes && change(bytes));
      });
    };
    this.#server.register(path, handler, asIs, asIs, 'unary');
  }
}
