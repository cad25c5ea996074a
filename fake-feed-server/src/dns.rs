//! A name server that answers by script: real DNS over UDP (RFC 1035), another answer to each question if need be.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Type A.
const A: u16 = 1;
/// Type AAAA (RFC 3596).
const AAAA: u16 = 28;
/// Bytes of a header.
const HEADER: usize = 12;

/// A question as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Name without the final dot, in lower case.
    pub name: String,
    /// Whether addresses of IPv6 are asked for.
    pub v6: bool,
    /// Questions of this name and family before it.
    pub before: usize,
}

type Script = dyn Fn(&Question) -> Option<Vec<IpAddr>> + Send + Sync;

/// A running name server; it ends when it is dropped.
pub struct FakeDns {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Question>>>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for FakeDns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeDns").field("address", &self.address).finish_non_exhaustive()
    }
}

impl FakeDns {
    /// Starts on a free port of loopback. The script gives the addresses of a name; `None` means there is no such name.
    ///
    /// # Errors
    /// Where the port cannot be bound.
    pub async fn start(
        script: impl Fn(&Question) -> Option<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let asked: Arc<Mutex<Vec<Question>>> = Arc::default();
        let task = tokio::spawn(serve(socket, Arc::new(script), Arc::clone(&asked)));
        Ok(Self { address, asked, task })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every question so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeDns {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, script: Arc<Script>, asked: Arc<Mutex<Vec<Question>>>) {
    let mut buffer = [0; 1_500];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let Some(reply) = buffer.get(..length).and_then(|message| answer(message, &*script, &asked)) else { continue };
        // A client that is gone asks again or does not.
        let _ = socket.send_to(&reply, from).await;
    }
}

/// The reply to a message with one question; `None` where it is no such message.
fn answer(message: &[u8], script: &Script, asked: &Mutex<Vec<Question>>) -> Option<Vec<u8>> {
    let (name, end) = name(message)?;
    let kind = u16::from_be_bytes(*message.get(end..)?.first_chunk()?);
    let question = {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = asked.iter().filter(|q| q.name == name && q.v6 == (kind == AAAA)).count();
        let question = Question { name, v6: kind == AAAA, before };
        asked.push(question.clone());
        question
    };
    let found = script(&question);
    let addresses: Vec<IpAddr> = found
        .iter()
        .flatten()
        .filter(|a| matches!((a, kind), (IpAddr::V4(_), A) | (IpAddr::V6(_), AAAA)))
        .copied()
        .collect();
    let mut reply = message.get(..2)?.to_vec();
    // Response, recursion desired and available; 3 means no such name (section 4.1.1).
    reply.extend([0x81, if found.is_some() { 0x80 } else { 0x83 }]);
    reply.extend([0, 1]);
    reply.extend(u16::try_from(addresses.len()).ok()?.to_be_bytes());
    reply.extend([0, 0, 0, 0]);
    reply.extend(message.get(HEADER..end + 4)?);
    for address in addresses {
        // The name of the question, class IN, no time to live.
        reply.extend([0xC0, 0x0C]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 0]);
        match address {
            IpAddr::V4(v4) => {
                reply.extend([0, 4]);
                reply.extend(v4.octets());
            }
            IpAddr::V6(v6) => {
                reply.extend([0, 16]);
                reply.extend(v6.octets());
            }
        }
    }
    Some(reply)
}

/// The name of the first question and where it ends.
fn name(message: &[u8]) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8(message.get(at..at + length)?.to_ascii_lowercase()).ok()?);
        at += length;
    }
}
