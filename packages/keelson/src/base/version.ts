/** Version of this package. */
export const keelsonVersion = '0.1.0';

/** The body of `/version`: the Kubernetes API level, and the version of this server. */
export const apiVersionInfo = { major: '1', minor: '34', gitVersion: `v1.34.0+keelson.${keelsonVersion}` } as const;
