import type { PodPlace } from './field-value.ts';
import type { ObjectReader } from './object-reader.ts';

/** The facts that environment variables and volumes of a pod can refer to. */
export interface EnvironmentFacts {
  readonly place: PodPlace;
  readonly objects: ObjectReader;
  readonly allocatable: Readonly<Record<string, string>>;
}
