import type { StorageConversion } from '@keelson/core';
import { Ingress as StoredKind } from '../../extensions/v1beta1/ingress.ts';
import type {
  IngressBackend as StoredBackend,
  Ingress as StoredIngress,
} from '../../extensions/v1beta1/schema/index.ts';
import type { Ingress, IngressBackend, IngressServiceBackend } from './schema/index.ts';

/**
 * Path type for stored paths without a type. The type is required in networking.k8s.io/v1, but optional in the stored
 * version.
 */
const unspecified = 'ImplementationSpecific';

/**
 * Ingresses are stored as extensions/v1beta1, which can represent all values of this version and also paths without a
 * type (docs/adr/0009). Fields are in the order of the target version, so that equal objects have equal bytes.
 */
export const ingressConversion: StorageConversion<Ingress> = {
  kind: StoredKind,
  toStorage({ spec, ...ingress }) {
    const { ingressClassName, defaultBackend, tls, rules } = spec;
    const { status, ...rest } = ingress;
    return {
      ...rest,
      apiVersion: StoredKind.apiVersion,
      kind: StoredKind.kind,
      spec: {
        ...(ingressClassName === undefined ? {} : { ingressClassName }),
        ...(defaultBackend ? { backend: storedBackend(defaultBackend) } : {}),
        ...(tls ? { tls } : {}),
        ...(rules ? { rules: rulesWith(rules, (path) => ({ ...path, backend: storedBackend(path.backend) })) } : {}),
      },
      ...(status ? { status } : {}),
    } as StoredIngress;
  },
  fromStorage(object) {
    const { spec, status, ...rest } = object as StoredIngress;
    const { ingressClassName, backend, tls, rules } = spec;
    return {
      ...rest,
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      spec: {
        ...(ingressClassName === undefined ? {} : { ingressClassName }),
        ...(backend ? { defaultBackend: shownBackend(backend) } : {}),
        ...(tls ? { tls } : {}),
        ...(rules
          ? {
              rules: rulesWith(rules, ({ path, pathType, backend: target }) => ({
                ...(path === undefined ? {} : { path }),
                pathType: pathType ?? unspecified,
                backend: shownBackend(target),
              })),
            }
          : {}),
      },
      ...(status ? { status } : {}),
    };
  },
  // The format of backends differs, and every ingress has a backend, so changing the apiVersion is not sufficient.
  isRelabel: () => false,
};

function rulesWith<P, Q>(
  rules: readonly { readonly host?: string; readonly http?: { readonly paths: readonly P[] } }[],
  convert: (path: P) => Q,
): { host?: string; http?: { paths: Q[] } }[] {
  return rules.map(({ host, http }) => ({
    ...(host === undefined ? {} : { host }),
    ...(http ? { http: { paths: http.paths.map(convert) } } : {}),
  }));
}

function storedBackend({ service, resource }: IngressBackend): StoredBackend {
  const port = service?.port?.number ?? service?.port?.name;
  return {
    ...(service ? { serviceName: service.name } : {}),
    ...(port === undefined ? {} : { servicePort: port }),
    ...(resource ? { resource } : {}),
  };
}

function shownBackend({ serviceName, servicePort, resource }: StoredBackend): IngressBackend {
  if (serviceName === undefined && servicePort === undefined) return resource ? { resource } : {};
  return { service: shownService(serviceName ?? '', servicePort), ...(resource ? { resource } : {}) };
}

function shownService(name: string, port: number | string | undefined): IngressServiceBackend {
  if (port === undefined) return { name, port: {} };
  return { name, port: typeof port === 'number' ? { number: port } : { name: port } };
}
