import type { AuditOptions, AuthenticationOptions, ServiceAccountOptions } from '@keelson/access';
import type { CertificateSigner } from '@keelson/controllers';
import type { AdmissionPlugin, AuthenticateToken, Authorizer, KindDefinition } from '@keelson/core';
import type { Clock, Logger, Metrics, Tracing } from '@keelson/core/runtime';
import type { AuthorizationOptions } from '../config/authorization-options.ts';
import type { MemoryBudgets } from '../config/memory-budgets.ts';
import type { HistoryWindow, ReadMode, StorageChoice, WatchWindow } from '../config/storage-choice.ts';
import type { ServiceServerOptions } from '../service-addresses/address-range.ts';
import type { ControllersOption } from './controller-choice.ts';

/** Options of `createControlPlane`; every one has a default. */
export interface ControlPlaneOptions {
  /** Kinds to serve in addition to the built-in ones. */
  readonly kinds?: readonly KindDefinition[];
  /** False: without the built-in kinds; then there are no namespaces and no controllers. Default true. */
  readonly builtinKinds?: boolean;
  /**
   * A storage URL, an adapter with its options, a store that is not open yet, or routes to several stores. Default
   * `memory:`.
   */
  readonly storage?: StorageChoice;
  /** The history that stores keep for watches and pages. Settings of a store take precedence. */
  readonly history?: HistoryWindow;
  /** Limits of the latest changes that the watch cache keeps in memory. */
  readonly watchWindow?: WatchWindow;
  /**
   * Memory, in bytes, for data that is kept to save repeated work. The budgets of stored objects are for all stores of
   * the plane together; those of responses are for each listener.
   */
  readonly memoryBudgets?: MemoryBudgets;
  /**
   * The state that gets and lists over HTTP without resourceVersion return. Default `consistent`; in-process calls are
   * always consistent.
   */
  readonly reads?: ReadMode;
  /**
   * Directory in which the plane records the identities of its stores, to reject other stores under their names.
   * Absent: identities are not compared.
   */
  readonly data?: string;
  /** Accept a store with another identity. Default false. */
  readonly acceptNewStore?: boolean;
  /** Admission plugins that run after the built-in ones. */
  readonly admission?: readonly AdmissionPlugin[];
  /** Built-in admission plugins that are left out, by their names in kube-apiserver, such as `LimitRanger`. */
  readonly disabledAdmissionPlugins?: readonly string[];
  /** How requests over HTTP are authorized and access reviews are answered. Default: the modes `Node` and `RBAC`. */
  readonly authorization?: AuthorizationOptions;
  /** An authorizer of the program, instead of `authorization`. */
  readonly authorizer?: Authorizer;
  /** Sources of the identities of users over HTTPS and in token reviews. */
  readonly authentication?: AuthenticationOptions;
  /** A further source of identities of bearer tokens; its results are not cached. */
  readonly authenticateToken?: AuthenticateToken;
  /** Records requests over HTTP. Absent: nothing is recorded. */
  readonly audit?: AuditOptions;
  /**
   * File with an `apiserver.config.k8s.io/v1` EncryptionConfiguration: the kinds whose objects are encrypted in the
   * stores, and the keys. Read again when it changes. Absent: nothing is encrypted.
   */
  readonly encryptionConfigFile?: string;
  /**
   * Service accounts: their tokens, and the account of each pod. Absent: no tokens are issued, and pods get no account.
   * Requires the built-in kinds.
   */
  readonly serviceAccounts?: PlaneServiceAccounts;
  /**
   * Issues the certificates of approved certificate signing requests. Absent: the requests are stored and no
   * certificate is issued.
   */
  readonly certificateSigner?: CertificateSigner;
  /** Ranges of the cluster addresses and node ports of services. Requires the built-in kinds. */
  readonly services?: Partial<ServiceServerOptions>;
  /**
   * The controllers to run. Default true: those that the API itself needs, for namespaces, garbage collection of
   * objects and pods, certificates, roles and accounts. A list contains names as in the option `--controllers` of the
   * command (`*`, `NAME`, `-NAME`, `api`) and controllers of your own: `['api', widgetController]`. When several
   * processes may write to the store, one of the servers is elected to run them.
   */
  readonly controllers?: ControllersOption;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /**
   * Records requests, calls of stores, admission plugins and runs of controllers as spans; see `openTelemetry` of
   * `keelson/opentelemetry`. Default: none.
   */
  readonly tracing?: Tracing;
  /**
   * Aborts the start: started services are stopped, and `createControlPlane` rejects with the reason of the
   * signal.
   */
  readonly signal?: AbortSignal;
  readonly continueTokens?: {
    /** Signs continue tokens: at least 16 bytes, equal on every server of a store. Default: a secret in the store. */
    readonly secret?: Buffer;
    /** Lifetime of a continue token. Default five minutes. */
    readonly lifetimeMs?: number;
  };
}

/** {@link ServiceAccountOptions} and the certificate authority that pods trust. */
export interface PlaneServiceAccounts extends ServiceAccountOptions {
  /**
   * Authorities of the server's certificate, PEM, published to every namespace; a function returns the present ones,
   * and is called every minute. Absent: none is published.
   */
  readonly certificateAuthority?: string | (() => string);
}
