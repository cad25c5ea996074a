//! A server that goes wrong at the level of bytes: it stalls, drips, resets, and says what it is told to say.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What is done with a connection, step by step; behind the last it is closed.
#[derive(Debug, Clone)]
pub enum Step {
    /// Read until the header section of a request has ended.
    ReadRequest,
    /// Send these bytes.
    Send(Vec<u8>),
    /// Send one byte again and again, with a pause between, until the other side is gone.
    Drip(Duration),
    /// Do nothing more and keep the connection open.
    Stall,
    /// Reset the connection.
    Reset,
}

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub struct RoughServer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl RoughServer {
    /// Starts on a free port of loopback; every connection goes through the same steps.
    ///
    /// # Errors
    /// Where the port cannot be listened on.
    pub async fn start(steps: Vec<Step>) -> std::io::Result<Self> {
        Self::start_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), steps).await
    }

    /// Starts on an address.
    ///
    /// # Errors
    /// Where it cannot be listened on.
    pub async fn start_on(address: SocketAddr, steps: Vec<Step>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let steps: Arc<[Step]> = steps.into();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let steps = Arc::clone(&steps);
                // The other side may go at any step; that ends this connection only.
                tokio::spawn(async move { drop(go_through(stream, &steps).await) });
            }
        });
        Ok(Self { address, connections, task })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for RoughServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn go_through(mut stream: TcpStream, steps: &[Step]) -> std::io::Result<()> {
    for step in steps {
        match step {
            Step::ReadRequest => read_request(&mut stream).await?,
            Step::Send(bytes) => stream.write_all(bytes).await?,
            Step::Drip(pause) => loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(*pause).await;
            },
            Step::Stall => std::future::pending().await,
            Step::Reset => {
                stream.set_zero_linger()?;
                return Ok(());
            }
        }
    }
    stream.shutdown().await
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(())
}
