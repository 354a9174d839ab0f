import type { PodPlace } from './field-value.ts';
import type { ObjectReader } from './object-reader.ts';
import type { PodTokens } from './pod-tokens.ts';

/** The facts that environment variables and volumes of a pod can refer to. */
export interface EnvironmentFacts {
  readonly place: PodPlace;
  readonly objects: ObjectReader;
  /** Absent: there is no API server that issues tokens. */
  readonly tokens?: Pick<PodTokens, 'token'>;
  readonly allocatable: Readonly<Record<string, string>>;
}
