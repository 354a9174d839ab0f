import type { NetworkingV1Ingress as Ingress } from '@keelson/kinds';

/** The service port to which a rule leads. */
export interface Backend {
  readonly namespace: string;
  readonly service: string;
  /** Name or number of the port of the service. */
  readonly port: string | number;
}

interface PathRule {
  readonly path: string;
  readonly exact: boolean;
  readonly backend: Backend | undefined;
}

/** A TLS certificate for hosts: the name of a Secret. */
export interface CertificateRule {
  readonly host: string;
  /** `namespace/name`. */
  readonly secret: string;
}

type IngressBackend = NonNullable<Ingress['spec']['defaultBackend']>;

/**
 * The rules of all Ingresses as one table. When two Ingresses have the same host and path, the older one counts. A host
 * without wildcard precedes one with a wildcard, and both precede rules for every host. An exact path precedes
 * prefixes, and a longer prefix a shorter one.
 */
export class IngressRoutes {
  /** Sorted by precedence. */
  readonly #hosts = new Map<string, PathRule[]>();
  readonly #default: Backend | undefined;
  /** Hosts that have a certificate, for example `*.example.com`. */
  readonly certificates: readonly CertificateRule[];

  constructor(ingresses: Iterable<Ingress>) {
    const certificates: CertificateRule[] = [];
    let fallback: Backend | undefined;
    for (const { metadata, spec } of [...ingresses].sort(byAge)) {
      const namespace = metadata?.namespace ?? '';
      fallback ??= backendOf(spec.defaultBackend, namespace);
      for (const { hosts = [], secretName } of spec.tls ?? [])
        for (const host of hosts.length > 0 ? hosts : hostsOf(spec))
          if (secretName) certificates.push({ host: host.toLowerCase(), secret: `${namespace}/${secretName}` });
      for (const { host = '', http } of spec.rules ?? []) {
        const paths = this.#hosts.get(host.toLowerCase()) ?? [];
        this.#hosts.set(host.toLowerCase(), paths);
        for (const { path = '', pathType, backend } of http?.paths ?? [])
          paths.push({
            path: path === '' ? '/' : path,
            exact: pathType === 'Exact',
            backend: backendOf(backend, namespace),
          });
        // A host without paths sends everything to the default backend of its Ingress.
        if (http === undefined)
          paths.push({ path: '/', exact: false, backend: backendOf(spec.defaultBackend, namespace) });
      }
    }
    // The sort is stable, so that the rule of the older Ingress remains the first of equal ones.
    for (const paths of this.#hosts.values())
      paths.sort((a, b) => b.path.length - a.path.length || Number(b.exact) - Number(a.exact));
    this.#default = fallback;
    this.certificates = certificates;
  }

  /**
   * The backend for a request; undefined when no rule fits.
   *
   * @param host without a port
   * @param path without a query
   */
  find(host: string, path: string): Backend | undefined {
    const name = host.toLowerCase();
    for (const candidate of [name, wildcardOf(name), '']) {
      if (candidate === undefined) continue;
      const paths = this.#hosts.get(candidate) ?? [];
      const exact = paths.find((rule) => rule.exact && rule.path === path);
      const rule = exact ?? paths.find((one) => !one.exact && isPrefix(one.path, path));
      if (rule !== undefined) return rule.backend;
    }
    return this.#default;
  }

  /** The Secret with the certificate of a host. */
  certificateOf(host: string): string | undefined {
    const name = host.toLowerCase();
    const wildcard = wildcardOf(name);
    const found =
      this.certificates.find((rule) => rule.host === name) ?? this.certificates.find((rule) => rule.host === wildcard);
    return found?.secret;
  }
}

/** A wildcard stands for exactly one label. */
function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf('.');
  return dot <= 0 ? undefined : `*${host.slice(dot)}`;
}

/** Whether a path begins with all elements of a prefix: `/a` is a prefix of `/a/b`, but not of `/ab`. */
function isPrefix(prefix: string, path: string): boolean {
  const bare = prefix.endsWith('/') ? prefix.slice(0, -1) : prefix;
  return path === bare || path.startsWith(`${bare}/`);
}

function hostsOf({ rules = [] }: Ingress['spec']): string[] {
  return rules.flatMap(({ host }) => (host ? [host] : []));
}

function backendOf(backend: IngressBackend | undefined, namespace: string): Backend | undefined {
  const port = backend?.service?.port?.name ?? backend?.service?.port?.number;
  return backend?.service === undefined || port === undefined
    ? undefined
    : { namespace, service: backend.service.name, port };
}

function byAge(a: Ingress, b: Ingress): number {
  const text = ({ metadata }: Ingress) => `${metadata?.creationTimestamp} ${metadata?.namespace}/${metadata?.name}`;
  return text(a) < text(b) ? -1 : 1;
}
