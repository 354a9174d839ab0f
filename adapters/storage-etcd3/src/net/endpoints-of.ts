import { readFileSync } from 'node:fs';
import { Endpoint, type InspectionCall } from './endpoint.ts';

/** Addresses and credentials of an etcd cluster. */
export interface EndpointsOptions {
  /** `http://host:port` or `https://host:port` of the members, all of one cluster. */
  readonly endpoints: readonly string[];
  /** Paths of PEM files, for `https:` endpoints. */
  readonly tls?: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string };
  readonly auth?: { readonly username: string; readonly password: string };
}

/** @throws Error when the options contradict each other or a file cannot be read */
export function endpointsOf(
  { endpoints, tls, auth }: EndpointsOptions,
  inspect: (call: InspectionCall) => Promise<void>,
): Endpoint[] {
  if (endpoints.length === 0) throw new Error('etcd: needs at least one endpoint');
  const secure = endpoints.filter((url) => url.startsWith('https://')).length;
  if (secure > 0 && secure < endpoints.length) throw new Error('etcd: either all endpoints use TLS or none does');
  if (secure === 0 && tls !== undefined) throw new Error('etcd: TLS files require https endpoints');
  if (tls?.certFile !== undefined && tls.caFile === undefined) {
    throw new Error(
      'etcd: a client certificate also requires the file of the CA that signed the certificates of the servers',
    );
  }
  const credentials = {
    ...(tls?.caFile === undefined ? {} : { ca: readFileSync(tls.caFile) }),
    ...(tls?.certFile === undefined ? {} : { cert: readFileSync(tls.certFile) }),
    ...(tls?.keyFile === undefined ? {} : { key: readFileSync(tls.keyFile) }),
  };
  return endpoints.map(
    (url) => new Endpoint({ url, credentials: secure > 0 ? credentials : undefined, auth, inspect }),
  );
}
