/** The header by which a balancer says whose connection it hands on; every listener reads the same. */
export * from "@svc/cluster/net/ProxyHeader"
