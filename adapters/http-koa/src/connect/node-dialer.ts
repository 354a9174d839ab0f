/** How to prove who one is to a server with TLS, and whom to believe. */
export interface UpstreamTls {
  /** The client's certificate and key, PEM. */
  readonly cert?: string;
  readonly key?: string;
  /** Authorities of the server's certificate, PEM; absent: any certificate will do. */
  readonly ca?: string;
  /** The name that the server's certificate has to be for; default: the address. */
  readonly servername?: string;
}

/** A server that calls are passed on to. */
export interface Upstream {
  /** An IP address. */
  readonly host: string;
  readonly port: number;
  /** Absent: plain HTTP. */
  readonly tls?: UpstreamTls;
}

export interface AgentWish {
  /** True: the agent need not prove who it is. */
  readonly anyCertificate: boolean;
  /** True: the client decides what is asked, so that the addresses of this machine are out of reach. */
  readonly proxied: boolean;
  readonly signal: AbortSignal;
}

/** How the server finds the nodes of its cluster. */
export interface NodeDialer {
  /** The agent of a node. @throws StatusError when there is no such node, or no way to it */
  agent(node: string, wish: AgentWish): Promise<Upstream>;
  /** An address of a node that may be called for clients. @throws StatusError as `agent` */
  address(node: string, signal: AbortSignal): Promise<string>;
}
