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
  ],
  ImageService: ['ImageStatus', 'ListImages'],
};

/**
 * A daemon that knows nothing but `v1alpha2`: it hands calls of that version on to a real one, and refuses all others.
 */
export class V1alpha2Front {
  readonly endpoint: string;
  /** Paths of the calls that were handed on. */
  readonly calls: string[] = [];
  readonly #server = new Server();
  readonly #client: Client;

  private constructor(socket: string, own: string) {
    this.endpoint = `unix://${own}`;
    this.#client = new Client(`unix://${socket}`, credentials.createInsecure());
  }

  static async open(socket: string, own: string): Promise<V1alpha2Front> {
    const front = new V1alpha2Front(socket, own);
    for (const [service, names] of Object.entries(services)) {
      for (const name of names) front.#handOn(`/runtime.v1alpha2.${service}/${name}`);
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

  #handOn(path: string): void {
    const handler = (
      call: { request: Buffer },
      reply: (error: Partial<ServiceError> | null, bytes?: Buffer) => void,
    ) => {
      this.calls.push(path);
      this.#client.makeUnaryRequest(path, asIs, asIs, call.request, (error, bytes) => {
        reply(error && { code: error.code ?? status.UNKNOWN, details: error.details }, bytes);
      });
    };
    this.#server.register(path, handler, asIs, asIs, 'unary');
  }
}
